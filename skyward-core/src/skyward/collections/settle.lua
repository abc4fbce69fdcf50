-- Acknowledge what a holder has taken, or put it back in front. KEYS: items, taken, holders, getters waiting, their
-- tokens; ARGV: holder, 1 to acknowledge, id of the one that is meant or ''.
local ids = redis.call('HKEYS', KEYS[2])
if ARGV[3] ~= '' then
  ids = {ARGV[3]}
end
table.sort(ids, function(one, other) return one > other end)
local settled = 0
for _, id in ipairs(ids) do
  local value = redis.call('HGET', KEYS[2], id)
  if value then
    redis.call('HDEL', KEYS[2], id)
    settled = settled + 1
    if ARGV[2] ~= '1' then
      redis.call('LPUSH', KEYS[1], id .. value)
      wake(KEYS[4], KEYS[5])
    end
  end
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('SREM', KEYS[3], ARGV[1])
end
return settled

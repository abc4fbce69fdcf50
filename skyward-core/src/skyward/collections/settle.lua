-- Begins with: waking.
-- Acknowledge what a holder has taken, or put it back in front.
-- KEYS: none; ARGV: queue, holder, 1 to acknowledge, id of the one that is meant or ''.
local name = ARGV[1]
local mine = 'sky:queue-taken:' .. name .. '\0' .. ARGV[2]
local ids = {ARGV[4]}
if ARGV[4] == '' then
  ids = redis.call('HKEYS', mine)
  table.sort(ids, function(one, other) return one > other end)
end
local settled = 0
for _, id in ipairs(ids) do
  local value = redis.call('HGET', mine, id)
  if value then
    redis.call('HDEL', mine, id)
    settled = settled + 1
    if ARGV[3] ~= '1' then
      redis.call('LPUSH', 'sky:queue:' .. name, id .. value)
      wake('sky:queue-getting:' .. name, 'sky:queue-got:' .. name)
    end
  end
end
if redis.call('EXISTS', mine) == 0 then
  redis.call('SREM', 'sky:queue-holders:' .. name, ARGV[2])
end
return settled

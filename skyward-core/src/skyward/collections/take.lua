-- KEYS: session, items, holders, looked, getters waiting, their tokens, putters waiting, their tokens.
-- ARGV: write, holder, lease in ms, id to acknowledge or '', name of a holder's lease, of what it has taken (each to
-- be followed by the holder), whether to wait.
local mine = ARGV[6] .. ARGV[2]
local done, id = replayed()
if done then
  return id and {id, redis.call('HGET', mine, id)}
end
hold(ARGV[5] .. ARGV[2], ARGV[3])
if ARGV[4] ~= '' then
  redis.call('HDEL', mine, ARGV[4])
end
-- What holders have that are gone is delivered again; once in half a second is soon enough.
if redis.call('SET', KEYS[4], '1', 'NX', 'PX', 500) then
  for _, holder in ipairs(redis.call('SMEMBERS', KEYS[3])) do
    if redis.call('EXISTS', ARGV[5] .. holder) == 0 then
      local ids = redis.call('HKEYS', ARGV[6] .. holder)
      table.sort(ids, function(one, other) return one > other end)
      for _, lost in ipairs(ids) do
        redis.call('LPUSH', KEYS[2], lost .. redis.call('HGET', ARGV[6] .. holder, lost))
        wake(KEYS[5], KEYS[6])
      end
      redis.call('DEL', ARGV[6] .. holder)
      redis.call('SREM', KEYS[3], holder)
    end
  end
end
local item = redis.call('LPOP', KEYS[2])
if not item then
  if ARGV[7] == '1' then
    wait(KEYS[5], KEYS[6])
  end
  return answer(false)
end
local found = string.sub(item, 1, 16)
local value = string.sub(item, 17)
redis.call('HSET', mine, found, value)
redis.call('SADD', KEYS[3], ARGV[2])
wake(KEYS[7], KEYS[8])
answer(found)
return {found, value}

-- Begins with: replay, waking.
-- KEYS: session; ARGV: write, queue, holder, lease in ms, id to acknowledge or '', whether to wait.
-- The answer is the id, 16 characters, and the value behind it.
local name = ARGV[2]
local items = 'sky:queue:' .. name
local taken = 'sky:queue-taken:' .. name .. '\0'
local mine = taken .. ARGV[3]
local done, id = replayed()
if done then
  return id and id .. (redis.call('HGET', mine, id) or '')
end
hold('sky:lease:' .. ARGV[3], ARGV[4])
if ARGV[5] ~= '' then
  redis.call('HDEL', mine, ARGV[5])
end
-- What holders have that are gone is delivered again; once in half a second is soon enough.
if redis.call('SET', 'sky:queue-looked:' .. name, '1', 'NX', 'PX', 500) then
  local holders = 'sky:queue-holders:' .. name
  for _, holder in ipairs(redis.call('SMEMBERS', holders)) do
    if redis.call('EXISTS', 'sky:lease:' .. holder) == 0 then
      local ids = redis.call('HKEYS', taken .. holder)
      table.sort(ids, function(one, other) return one > other end)
      for _, lost in ipairs(ids) do
        redis.call('LPUSH', items, lost .. redis.call('HGET', taken .. holder, lost))
        wake('sky:queue-getting:' .. name, 'sky:queue-got:' .. name)
      end
      redis.call('DEL', taken .. holder)
      redis.call('SREM', holders, holder)
    end
  end
end
local item = redis.call('LPOP', items)
if not item then
  if ARGV[6] == '1' then
    wait('sky:queue-getting:' .. name, 'sky:queue-got:' .. name)
  end
  return answer(false)
end
id = string.sub(item, 1, 16)
redis.call('HSET', mine, id, string.sub(item, 17))
redis.call('SADD', 'sky:queue-holders:' .. name, ARGV[3])
wake('sky:queue-putting:' .. name, 'sky:queue-room:' .. name)
answer(id)
return item

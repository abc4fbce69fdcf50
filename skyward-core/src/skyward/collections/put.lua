-- Begins with: replay, waking.
-- KEYS: session; ARGV: write, queue, maxsize, value.
local done, reply = replayed()
if done then
  return reply
end
local name = ARGV[2]
local items = 'sky:queue:' .. name
local most = tonumber(ARGV[3])
if most > 0 and redis.call('LLEN', items) >= most then
  wait('sky:queue-putting:' .. name, 'sky:queue-room:' .. name)
  return answer(0)
end
local id = string.format('%016x', redis.call('INCR', 'sky:queue-ids:' .. name))
redis.call('RPUSH', items, id .. ARGV[4])
wake('sky:queue-getting:' .. name, 'sky:queue-got:' .. name)
return answer(1)

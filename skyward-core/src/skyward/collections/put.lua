-- Begins with: replay, waking.
-- KEYS: session; ARGV: write, queue, maxsize, value.
-- The last one of the list is the first of the queue: what waits for it is served by the store itself.
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
redis.call('LPUSH', items, id .. ARGV[4])
return answer(1)

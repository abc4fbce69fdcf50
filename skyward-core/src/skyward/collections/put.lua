-- KEYS: session, items, ids, getters waiting, their tokens, putters waiting, their tokens; ARGV: write, maxsize, value.
local done, reply = replayed()
if done then
  return reply
end
local most = tonumber(ARGV[2])
if most > 0 and redis.call('LLEN', KEYS[2]) >= most then
  wait(KEYS[6], KEYS[7])
  return answer(0)
end
local id = string.format('%016x', redis.call('INCR', KEYS[3]))
redis.call('RPUSH', KEYS[2], id .. ARGV[3])
wake(KEYS[4], KEYS[5])
return answer(1)

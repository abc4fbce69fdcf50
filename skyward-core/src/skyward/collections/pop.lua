-- Begins with: replay.
-- KEYS: session, dict; ARGV: write, key.
local done, reply = replayed()
if done then
  return reply
end
local value = redis.call('HGET', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
return answer(value)

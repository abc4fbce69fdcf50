-- Begins with: replay.
-- KEYS: session, value, what was counted; ARGV: write, value.
local done, reply = replayed()
if done then
  return reply
end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])
return answer(1)

-- Begins with: replay, waking.
-- KEYS: session, lock, waiting, tokens; ARGV: write, grip. The answer is whether the grip held it.
local done, reply = replayed()
if done then
  return reply
end
if redis.call('HGET', KEYS[2], 'grip') ~= ARGV[2] then
  return answer(0)
end
redis.call('DEL', KEYS[2])
wake(KEYS[3], KEYS[4])
return answer(1)

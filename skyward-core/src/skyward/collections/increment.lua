-- KEYS: session, value; ARGV: write, by how much.
local done, reply = replayed()
if done then
  return reply
end
redis.call('INCRBY', KEYS[2], ARGV[2])
-- A number of Lua has 53 bits, its text all of them.
return answer(redis.call('GET', KEYS[2]))

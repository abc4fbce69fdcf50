-- Begins with: replay.
-- KEYS: session, value; ARGV: write, by how much.
local done, reply = replayed()
if done then
  return reply
end
local value = redis.call('INCRBY', KEYS[2], ARGV[2])
if value >= 9007199254740992 or value <= -9007199254740992 then
  -- A number of Lua has 53 bits, its text all of them.
  value = redis.call('GET', KEYS[2])
end
return answer(value)

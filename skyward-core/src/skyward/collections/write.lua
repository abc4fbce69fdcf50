-- Begins with: replay.
-- Any one command. KEYS: session; ARGV: write, command.
local done, reply = replayed()
if done then
  return reply
end
return answer(redis.call(unpack(ARGV, 2)))

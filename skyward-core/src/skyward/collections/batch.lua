-- Begins with: replay.
-- Several commands, whose replies are numbers. KEYS: session; ARGV: write, then for each command its length and words.
local done, reply = replayed()
if done then
  return reply
end
local at = 2
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + count))
  at = at + count + 1
end
return answer(1)

-- Acknowledge what consumers of a holder have taken, and put the rest back in front.
-- ARGV: queue, holder, consumer or '' for all, whether to put back the rest, ids to acknowledge.
-- The answer is how many were acknowledged.
local name = ARGV[1]
local holders = 'sky:queue-holders:' .. name
local taken = 'sky:queue-taken:' .. name .. '\0'
local members = {ARGV[2] .. '\0' .. ARGV[3]}
if ARGV[3] == '' then
  members = {}
  for _, member in ipairs(redis.call('SMEMBERS', holders)) do
    if string.match(member, '^[^%z]*') == ARGV[2] then
      members[#members + 1] = member
    end
  end
end
local finished = {}
for at = 5, #ARGV do
  finished[ARGV[at]] = true
end
local acknowledged = 0
local rest = {}
for _, member in ipairs(members) do
  for _, held in ipairs(redis.call('LRANGE', taken .. member, 0, -1)) do
    local done = finished[string.sub(held, 1, 16)]
    if done then
      acknowledged = acknowledged + 1
    elseif ARGV[4] == '1' then
      rest[#rest + 1] = held
    end
    if done or ARGV[4] == '1' then
      redis.call('LREM', taken .. member, 1, held)
    end
  end
  if redis.call('EXISTS', taken .. member) == 0 then
    redis.call('SREM', holders, member)
  end
end
table.sort(rest, function(one, other) return string.sub(one, 1, 16) > string.sub(other, 1, 16) end)
for _, held in ipairs(rest) do
  redis.call('RPUSH', 'sky:queue:' .. name, held)
end
return acknowledged

-- Acknowledge what consumers of a holder have taken, or put it back in front.
-- ARGV: queue, holder, consumer or '' for all, 1 to acknowledge, id of the one that is meant or ''.
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
local settled = {}
for _, member in ipairs(members) do
  for _, held in ipairs(redis.call('LRANGE', taken .. member, 0, -1)) do
    if ARGV[5] == '' or string.sub(held, 1, 16) == ARGV[5] then
      redis.call('LREM', taken .. member, 1, held)
      settled[#settled + 1] = held
    end
  end
  if redis.call('EXISTS', taken .. member) == 0 then
    redis.call('SREM', holders, member)
  end
end
if ARGV[4] ~= '1' then
  table.sort(settled, function(one, other) return string.sub(one, 1, 16) > string.sub(other, 1, 16) end)
  for _, held in ipairs(settled) do
    redis.call('RPUSH', 'sky:queue:' .. name, held)
  end
end
return #settled

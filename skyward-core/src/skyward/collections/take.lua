-- Begins with: waking.
-- ARGV: queue, holder, consumer, lease in ms, id to acknowledge or '', what follows (0 nothing, 1 a wait if there is
-- no item, 2 a command that takes one or waits for it), whether to look after others.
-- The answer is the id, 16 characters, and the value behind it; before a command that takes one it is whether a putter
-- waits for room, and how many items there are.
local name = ARGV[1]
local items = 'sky:queue:' .. name
local holders = 'sky:queue-holders:' .. name
local taken = 'sky:queue-taken:' .. name .. '\0'
local member = ARGV[2] .. '\0' .. ARGV[3]
local mine = taken .. member
hold('sky:lease:' .. ARGV[2], ARGV[4])
local item = false
for _, held in ipairs(redis.call('LRANGE', mine, 0, -1)) do
  if string.sub(held, 1, 16) == ARGV[5] then
    redis.call('LREM', mine, 1, held)
  else
    -- It was taken, and the answer lost.
    item = held
  end
end
if item then
  return item
end
if ARGV[7] == '1' then
  -- What holders have that are gone is delivered again.
  local lost = {}
  for _, other in ipairs(redis.call('SMEMBERS', holders)) do
    local holder = string.match(other, '^[^%z]*')
    if redis.call('EXISTS', 'sky:lease:' .. holder) == 0 then
      for _, held in ipairs(redis.call('LRANGE', taken .. other, 0, -1)) do
        lost[#lost + 1] = held
      end
      redis.call('DEL', taken .. other)
      redis.call('SREM', holders, other)
    end
  end
  table.sort(lost, function(one, other) return string.sub(one, 1, 16) > string.sub(other, 1, 16) end)
  for _, held in ipairs(lost) do
    redis.call('RPUSH', items, held)
  end
end
if ARGV[6] == '2' then
  redis.call('SADD', holders, member)
  return {redis.call('EXISTS', 'sky:queue-putting:' .. name), redis.call('LLEN', items)}
end
item = redis.call('RPOPLPUSH', items, mine)
if item or ARGV[6] == '1' then
  -- Before it waits: what the store moves to it then is known to be its.
  redis.call('SADD', holders, member)
else
  redis.call('SREM', holders, member)
end
if item then
  wake('sky:queue-putting:' .. name, 'sky:queue-room:' .. name)
end
return item

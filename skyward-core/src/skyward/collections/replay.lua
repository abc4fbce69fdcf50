-- A write whose answer was lost with its connection is sent again, and is answered again.
-- KEYS[1] is the session of the sender, ARGV[1] the number of the write in it, negative where it is sent again.
local function replayed()
  if string.byte(ARGV[1]) == 45 then
    local found = redis.call('GET', KEYS[1])
    if found then
      local last = cmsgpack.unpack(found)
      if '-' .. last[1] == ARGV[1] then
        return true, last[2]
      end
    end
    ARGV[1] = string.sub(ARGV[1], 2)
  end
  return false
end

local function answer(reply)
  -- Longer than a sender tries.
  redis.call('SET', KEYS[1], cmsgpack.pack({ARGV[1], reply}), 'PX', 600000)
  return reply
end

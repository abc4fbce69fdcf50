-- Goes before each script that writes, so that a write whose answer was lost with its connection can be sent again.
-- KEYS[1] is the session of the sender, ARGV[1] the number of the write in it.
local function replayed()
  local found = redis.call('GET', KEYS[1])
  if found then
    local last = cmsgpack.unpack(found)
    if last[1] == ARGV[1] then
      return true, last[2]
    end
  end
  return false
end

local function answer(reply)
  -- Longer than a sender tries.
  redis.call('SET', KEYS[1], cmsgpack.pack({ARGV[1], reply}), 'PX', 600000)
  return reply
end

-- A lease is renewed without memory, which a full store has none of.
local function hold(lease, milliseconds)
  if redis.call('PEXPIRE', lease, milliseconds) == 0 then
    redis.call('SET', lease, '1', 'PX', milliseconds)
  end
end

-- Wake one that waits; a token that stays is consumed by the next one that waits.
local function wake(waiting, tokens)
  if redis.call('EXISTS', waiting) == 1 then
    redis.call('LPUSH', tokens, '1')
    redis.call('LTRIM', tokens, 0, 63)
    redis.call('PEXPIRE', tokens, 10000)
  end
end

-- Say that one is about to wait, which it does for a second at most.
local function wait(waiting, tokens)
  redis.call('DEL', tokens)
  redis.call('SET', waiting, '1', 'PX', 3000)
end

-- A lease is renewed without memory, which a full store has none of.
local function hold(lease, milliseconds)
  if redis.call('PEXPIRE', lease, milliseconds) == 0 then
    redis.call('SET', lease, '1', 'PX', milliseconds)
  end
end

-- Wake one that waits; a token that stays is consumed by the next one that waits.
local function wake(waiting, tokens)
  if redis.call('EXISTS', waiting) == 1 and redis.call('LPUSH', tokens, '1') > 64 then
    redis.call('LTRIM', tokens, 0, 63)
  end
end

-- Say that one is about to wait, which it does for a second at most.
local function wait(waiting, tokens)
  redis.call('DEL', tokens)
  redis.call('SET', waiting, '1', 'PX', 3000)
end

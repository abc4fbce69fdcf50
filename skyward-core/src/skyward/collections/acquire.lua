-- Begins with: waking.
-- KEYS: lock, fence, waiting, tokens; ARGV: holder, grip, lease in ms, name of a holder's lease (to be followed by the
-- holder), whether to wait. The answer is the token, or nothing where another has it.
local held = redis.call('HMGET', KEYS[1], 'holder', 'grip', 'token')
if held[2] == ARGV[2] then
  return held[3]
end
if held[1] and redis.call('EXISTS', ARGV[4] .. held[1]) == 1 then
  if ARGV[5] == '1' then
    wait(KEYS[3], KEYS[4])
  end
  return false
end
hold(ARGV[4] .. ARGV[1], ARGV[3])
local token = string.format('%.0f', redis.call('INCR', KEYS[2]))
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'grip', ARGV[2], 'token', token)
return token

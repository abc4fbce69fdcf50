-- Look whether a round of a barrier goes on. KEYS: barrier, members, broken; ARGV: round, why it is to be broken or '',
-- name of a holder's lease (to be followed by the holder), name of a round's tokens (to be followed by the round).
-- The answer: wait, go, or why it is broken.
local why = redis.call('GET', KEYS[3])
if why then
  return why
end
if (redis.call('HGET', KEYS[1], 'round') or '0') ~= ARGV[1] then
  return 'go'
end
why = ARGV[2]
if why == '' then
  for _, holder in ipairs(redis.call('HVALS', KEYS[2])) do
    if redis.call('EXISTS', ARGV[3] .. holder) == 0 then
      why = 'a participant has ended'
    end
  end
end
if why == '' then
  return 'wait'
end
local count = redis.call('HLEN', KEYS[2])
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[1], 'round', tonumber(ARGV[1]) + 1)
redis.call('SET', KEYS[3], why, 'PX', 3600000)
local tokens = ARGV[4] .. ARGV[1]
for _ = 1, count do
  redis.call('LPUSH', tokens, 'broken')
end
if count > 0 then
  redis.call('PEXPIRE', tokens, 60000)
end
return why

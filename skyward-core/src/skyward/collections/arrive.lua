-- Begins with: replay, waking.
-- KEYS: session, barrier, members; ARGV: write, n, participant, holder, lease in ms, name of a holder's lease (to be
-- followed by the holder), name of a round's tokens (to be followed by the round).
-- The answer: what (go, wait, other), the index or, of an other, the n in use, the round.
local done, reply = replayed()
if done then
  return reply
end
local count = redis.call('HLEN', KEYS[3])
local round = tonumber(redis.call('HGET', KEYS[2], 'round') or '0')
if count > 0 then
  local n = redis.call('HGET', KEYS[2], 'n')
  if n ~= ARGV[2] then
    return answer({'other', tonumber(n), round})
  end
end
hold(ARGV[6] .. ARGV[4], ARGV[5])
redis.call('HSET', KEYS[2], 'n', ARGV[2])
if count + 1 < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])
  return answer({'wait', count, round})
end
redis.call('DEL', KEYS[3])
redis.call('HSET', KEYS[2], 'round', round + 1)
local tokens = ARGV[7] .. round
for _ = 1, count do
  redis.call('LPUSH', tokens, 'go')
end
if count > 0 then
  redis.call('PEXPIRE', tokens, 60000)
end
return answer({'go', count, round})

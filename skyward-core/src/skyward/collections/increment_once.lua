-- KEYS: value, what was counted; ARGV: by how much, for what.
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 0 then
  redis.call('INCRBY', KEYS[1], ARGV[1])
  redis.call('SADD', KEYS[2], ARGV[2])
end
return redis.call('GET', KEYS[1])

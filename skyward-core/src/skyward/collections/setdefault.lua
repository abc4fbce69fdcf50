-- Sent again it finds its own value. KEYS: dict; ARGV: key, value.
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[1])

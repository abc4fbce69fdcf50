-- A name is of the kind that it was first used as. KEYS: kind; ARGV: kind.
redis.call('SETNX', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])

-- Sets when to look at a game again, unless it was armed since it was claimed. KEYS: deadlines. ARGV: game id, the time until
-- which it is claimed, the new time ('' for never).
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])

-- Ends a claim and sets the game's next time, unless the game was armed since it was claimed.
-- KEYS: deadlines.
-- ARGV: 1 game id, 2 when the claim ends, 3 the new time ('' for never).
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])

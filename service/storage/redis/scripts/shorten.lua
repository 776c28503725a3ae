-- Shortens the lifetime of a game, unless the game has changed.
-- KEYS: the game's keys, the game hash first.
-- ARGV: 1 etag, 2 lifetime in milliseconds.
-- Returns 1, or 0 if the game has another etag.
local etag = redis.call('HGET', KEYS[1], 'etag')
if etag and etag ~= ARGV[1] then
  return 0
end
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) > tonumber(ARGV[2]) then
    redis.call('PEXPIRE', key, ARGV[2])
  end
end
return 1

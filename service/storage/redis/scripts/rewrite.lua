-- Replaces a game and its event stream, and drops the answers to its requests. The lifetime does not change.
-- KEYS: game hash, request hash, event stream.
-- ARGV: 1 the etag before, 2 etag, 3 snapshot, 4 channel to notify, 5 revision of the first change, then pairs of a change and its
--       etag.
-- Returns 1; 0 without effect if the game has another etag.
if redis.call('HGET', KEYS[1], 'etag') ~= ARGV[1] then
  return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[2], KEYS[3])
local revision = tonumber(ARGV[5])
for place = 6, #ARGV, 2 do
  redis.call('XADD', KEYS[3], string.format('%d-0', revision), 'change', ARGV[place], 'etag', ARGV[place + 1])
  revision = revision + 1
end
redis.call('HSET', KEYS[1], 'snapshot', ARGV[3], 'etag', ARGV[2])
redis.call('PEXPIRE', KEYS[3], left)
redis.call('PUBLISH', ARGV[4], revision - 1)
return 1

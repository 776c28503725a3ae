-- Stores sightings of the owners of seats, and notifies if a watch opened or closed. Without a game it does nothing.
-- KEYS: game hash, presence hash. Its fields: a seat, when its owner was seen last; `seat:server`, until when a watch counts as
--       open.
-- ARGV: 1 the reporting server, 2 how long a watch counts as open, in milliseconds, 3 channel to notify, 4 the time ('' for
--       the server's clock), then pairs of a seat and `call`, `open` or `closed`.
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  return
end
local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local changes = 0
local kept = redis.call('HGETALL', KEYS[2])
for i = 1, #kept, 2 do
  if string.find(kept[i], ':', 1, true) and tonumber(kept[i + 1]) < now then -- its server died
    changes = changes + redis.call('HDEL', KEYS[2], kept[i])
  end
end
for i = 5, #ARGV, 2 do
  local seat, sighting = ARGV[i], ARGV[i + 1]
  if sighting ~= 'closed' or redis.call('HEXISTS', KEYS[2], seat) == 1 then -- else the seat was vacated
    redis.call('HSET', KEYS[2], seat, string.format('%d', now))
  end
  if sighting == 'open' then
    changes = changes + redis.call('HSET', KEYS[2], seat .. ':' .. ARGV[1], string.format('%d', now + ARGV[2]))
  elseif sighting == 'closed' then
    changes = changes + redis.call('HDEL', KEYS[2], seat .. ':' .. ARGV[1])
  end
end
redis.call('PEXPIRE', KEYS[2], left)
if changes > 0 then
  redis.call('PUBLISH', ARGV[3], '')
end

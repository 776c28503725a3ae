-- Saves a draft, unless the game has changed since it was checked, its turn is past the deadline, or its seat saves too many.
-- KEYS: game hash, draft hash.
-- ARGV: 1 etag of the game, 2 draft, 3 seat, 4 the turn's deadline in milliseconds ('' for none), 5 milliseconds between drafts
--       of a seat, 6 how many milliseconds of drafts a seat may save at once, 7 channel to notify ('' for none), 8 the time (''
--       for the server's clock).
-- Returns the draft's number, 0 if the game has changed or the deadline has passed, -1 if the seat saves too many.
local now = tonumber(ARGV[8])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if redis.call('HGET', KEYS[1], 'etag') ~= ARGV[1] or (ARGV[4] ~= '' and now > tonumber(ARGV[4])) then
  return 0
end
-- When the seat's next draft is due, if it saved them at an even pace.
local field = 'due:' .. ARGV[3]
local kept = redis.call('HMGET', KEYS[2], field, 'number')
local due = math.max(tonumber(kept[1]) or 0, now) + ARGV[5]
if due > now + ARGV[6] then
  return -1
end
local number = (tonumber(kept[2]) or 0) + 1
redis.call('HSET', KEYS[2], 'draft', ARGV[2], 'number', number, field, string.format('%d', due))
redis.call('PEXPIRE', KEYS[2], redis.call('PTTL', KEYS[1]))
if ARGV[7] ~= '' then
  redis.call('PUBLISH', ARGV[7], number)
end
return number

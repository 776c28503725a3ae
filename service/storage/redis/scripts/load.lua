-- Loads a game.
-- KEYS: game hash, request hash.
-- ARGV: request key ('' for none).
-- Returns {seconds, microseconds, snapshot or nil, memo of the request or nil}.
local time = redis.call('TIME')
local memo = ARGV[1] ~= '' and redis.call('HGET', KEYS[2], ARGV[1])
return { time[1], time[2], redis.call('HGET', KEYS[1], 'snapshot'), memo }

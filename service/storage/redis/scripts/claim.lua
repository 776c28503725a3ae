-- Claims games whose time has come. No other server finds them until the claim ends.
-- KEYS: deadlines.
-- ARGV: 1 most games, 2 the time in milliseconds ('' for the server's clock), 3 the claim's length in milliseconds, then the ids
--       of games to skip.
-- Returns for each game: id, the time that was set, when the claim ends.
-- Repairs foreign data: removes members that are no game ids; a game whose time is not an integer is due now.
local now = ARGV[2]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local skipped = {}
for place = 4, #ARGV do
  skipped[ARGV[place]] = true
end
local until_ms = string.format('%d', now + ARGV[3])
local most = ARGV[1] + #ARGV - 3
local set = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, most)
local claimed = {}
for place = 1, #set, 2 do
  local game, time = set[place], set[place + 1]
  if #game ~= 32 or string.find(game, '[^0-9a-f]') then
    redis.call('ZREM', KEYS[1], game)
  elseif not skipped[game] and #claimed < 3 * ARGV[1] then
    if string.find(time, '[^0-9]') then
      time = string.format('%d', now - 1)
    end
    redis.call('ZADD', KEYS[1], until_ms, game)
    table.insert(claimed, game)
    table.insert(claimed, time)
    table.insert(claimed, until_ms)
  end
end
return claimed

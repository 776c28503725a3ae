-- Claims games whose time has come: for the length of the lease no other server finds them.
-- KEYS: deadlines. ARGV: 1 most games, 2 the time in milliseconds ('' for the server's), 3 the lease in milliseconds, and then
-- the ids of games to leave alone. Answers: id, time that was set, time until which it is claimed, of each.
-- What no server has set: what is no game's id is removed, and a game whose time is no whole number is due now.
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

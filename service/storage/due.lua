-- The games whose time has come, each with the time that was set. KEYS: deadlines. ARGV: most games, the time in milliseconds
-- ('' for the server's). Of what no server has set: what is no game's id goes, and a game whose time is no whole number is
-- due now.
local now = ARGV[2]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local set = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local due = {}
for place = 1, #set, 2 do
  local game, time = set[place], set[place + 1]
  if #game ~= 32 or string.find(game, '[^0-9a-f]') then
    redis.call('ZREM', KEYS[1], game)
  else
    if string.find(time, '[^0-9]') then
      time = tostring(now - 1)
      redis.call('ZADD', KEYS[1], time, game)
    end
    table.insert(due, game)
    table.insert(due, time)
  end
end
return due

-- The games whose time has come, each with the time that was set. KEYS: deadlines. ARGV: most games, the time in milliseconds ('' for the server's).
local now = ARGV[2]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])

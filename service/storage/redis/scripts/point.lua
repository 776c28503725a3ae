-- Points a name at a game, unless it points at another game already.
-- KEYS: name.
-- ARGV: 1 game id, 2 the game that it may replace ('' for none), 3 lifetime of the name in milliseconds.
-- Returns the game that the name points at.
local current = redis.call('GET', KEYS[1])
if current and current ~= ARGV[1] and current ~= ARGV[2] then
  return current
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]

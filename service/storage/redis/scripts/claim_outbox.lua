-- Claims entries of a part of the outbox: new ones, then those whose claim has ended. Creates the consumer group if it is missing.
-- KEYS: the part.
-- ARGV: 1 group, 2 consumer, 3 most entries, 4 how long an earlier claim lasts, in milliseconds.
-- Returns for each entry: id, game.
local most = tonumber(ARGV[3])
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM') -- an error if it exists
local claimed, is_claimed = {}, {}
local function add(entries)
  for _, entry in ipairs(entries) do
    if not is_claimed[entry[1]] then -- claims of 0 ms have ended already
      is_claimed[entry[1]] = true
      table.insert(claimed, entry[1])
      table.insert(claimed, entry[2][2])
    end
  end
end
local reply = redis.call(
  'XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', most, 'STREAMS', KEYS[1], '>'
)
if reply then
  add(reply[1][2])
end
local cursor = '0-0'
while #claimed < 2 * most do
  reply = redis.call(
    'XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[4], cursor, 'COUNT', most - #claimed / 2
  )
  add(reply[2])
  cursor = reply[1]
  if cursor == '0-0' then
    break
  end
end
return claimed

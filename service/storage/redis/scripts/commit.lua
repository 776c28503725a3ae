-- Commits a change atomically: looks up the request's memo, checks the fence, then writes everything. Of a request that changes
-- nothing it writes the memo only.
-- KEYS: game hash, request hash, event stream, draft hash, presence hash.
-- ARGV: 1 previous etag ('' for a creation), 2 revision, 3 etag, 4 snapshot, 5 change ('' for none), 6 request key ('' for none), 7 memo,
--       8 the request's sender ('' for callers without a token), 9 most memos of a sender, 10 lifetime of the game in
--       milliseconds, 11 lifetime of its memos, 12 most entries in the stream, 13 channel to notify, 14 time of the decision in
--       milliseconds, 15 when the decision expires ('' for never), 16 the time ('' for the server's clock), 17 the seat that
--       the change frees, whose presence is dropped ('' for none).
-- Returns {'committed', time}, {'conflict', time} or {'replay', time, memo}.
local now = tonumber(ARGV[16])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if ARGV[6] ~= '' then
  local memo = redis.call('HGET', KEYS[2], ARGV[6])
  if memo then
    return { 'replay', now, memo }
  end
end
if (redis.call('HGET', KEYS[1], 'etag') or '') ~= ARGV[1] then
  return { 'conflict', now }
end
if ARGV[15] ~= '' and (now < tonumber(ARGV[14]) or now > tonumber(ARGV[15])) then
  return { 'conflict', now }
end
if ARGV[5] ~= '' then
  -- The stream's ids are the revisions. This check refuses a gap, and XADD a repeat, before anything is written.
  local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
  local newest = last and tonumber(string.match(last[1], '^%d+')) or 0
  if newest + 1 ~= tonumber(ARGV[2]) then
    return redis.error_reply('GAP the event stream ends at ' .. newest .. ', the change is ' .. ARGV[2])
  end
  redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[12], ARGV[2] .. '-0', 'change', ARGV[5], 'etag', ARGV[3])
  redis.call('HSET', KEYS[1], 'snapshot', ARGV[4], 'etag', ARGV[3], 'revision', ARGV[2])
end
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[6], ARGV[7])
  -- One field for each sender holds the keys of its last memos, oldest first. All keys have the same length.
  local field, length = 'last:' .. ARGV[8], #ARGV[6]
  local keys = (redis.call('HGET', KEYS[2], field) or '') .. ARGV[6]
  if #keys > length * tonumber(ARGV[9]) then
    redis.call('HDEL', KEYS[2], string.sub(keys, 1, length))
    keys = string.sub(keys, length + 1)
  end
  redis.call('HSET', KEYS[2], field, keys)
end
redis.call('PEXPIRE', KEYS[2], ARGV[11])
if ARGV[5] == '' then
  return { 'committed', now }
end
if ARGV[17] ~= '' then
  for _, name in ipairs(redis.call('HKEYS', KEYS[5])) do
    if string.match(name, '^%d+') == ARGV[17] then
      redis.call('HDEL', KEYS[5], name)
    end
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[10])
redis.call('PEXPIRE', KEYS[3], ARGV[10])
redis.call('PEXPIRE', KEYS[4], ARGV[10])
redis.call('PEXPIRE', KEYS[5], ARGV[10])
redis.call('PUBLISH', ARGV[13], ARGV[2])
return { 'committed', now }

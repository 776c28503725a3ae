-- One commit, all or nothing. The request is asked first, then the fence, then everything is written.
-- KEYS: game hash, request hash, event stream.
-- ARGV: 1 previous etag ('' for a creation), 2 revision, 3 etag, 4 snapshot, 5 change, 6 request key ('' for none), 7 memo,
--       8 milliseconds to live, 9 entries to keep in the stream, 10 channel to tell, 11 time of the decision in
--       milliseconds, 12 time until which it holds ('' for ever), 13 the time ('' for the server's).
-- Answers: {'committed', time}, {'conflict', time}, {'replay', time, memo}.
local now = tonumber(ARGV[13])
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
if ARGV[12] ~= '' and (now < tonumber(ARGV[11]) or now > tonumber(ARGV[12])) then
  return { 'conflict', now }
end
-- The stream's ids are the revisions: the store itself refuses a gap here, and a repeat in XADD, before anything is written.
local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
local newest = last and tonumber(string.match(last[1], '^%d+')) or 0
if newest + 1 ~= tonumber(ARGV[2]) then
  return redis.error_reply('GAP the event stream ends at ' .. newest .. ', the change is ' .. ARGV[2])
end
redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[9], ARGV[2] .. '-0', 'change', ARGV[5], 'etag', ARGV[3])
redis.call('HSET', KEYS[1], 'snapshot', ARGV[4], 'etag', ARGV[3], 'revision', ARGV[2])
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[6], ARGV[7])
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, ARGV[8])
end
redis.call('PUBLISH', ARGV[10], ARGV[2])
return { 'committed', now }

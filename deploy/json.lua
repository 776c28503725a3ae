-- What Envoy's JSON filter cannot do: it drops unknown fields of bodies, its refusal of a wrong value does not say what to write,
-- and its event streams have no ids. This script runs before it. docs/web-edge.md says what it does. If it fails, Envoy logs the
-- error, and the call goes on without it. It also removes headers of all calls that the service's gRPC library could not parse.

local OPENAPI = "/etc/envoy/openapi.json"
local SHOWN = 5
local TILES = {R = "RED_", B = "BLUE_", K = "BLACK_", O = "ORANGE_", Y = "ORANGE_", G = "GREEN_", P = "PURPLE_", J = "JOKER",
  F = "FALSE_JOKER", D = "DOUBLE_JOKER", M = "MIRROR", C = "COLOR_CHANGE"}
local RETRY_MS = 3000
-- The headers that gRPC parses and clients send, and the forms that it accepts. It ends calls with others.
local PARSED = {["grpc-timeout"] = {"^%d%d?%d?%d?%d?%d?%d?%d?[HMSmun]$"}, ["grpc-accept-encoding"] = {""},
  ["grpc-encoding"] = {"^identity$", "^gzip$", "^deflate$"}}

-- Returns the JSON value at a place of a text without escapes, and the place after it; numbers, booleans and null as text.
-- Like the JSON filter, it accepts keys without quotes, single quotes and a last comma. Raises an error for other text.
local function read(text, at)
  at = text:match("^%s*()", at)
  local first = text:sub(at, at)
  if first ~= "{" and first ~= "[" then
    local pattern = first == '"' and '^"([^"]*)"()' or first == "'" and "^'([^']*)'()" or "^([%w_+.-]+)()"
    local word, after = text:match(pattern, at)
    return assert(word), after
  end
  local values, closing, count = {}, first == "{" and "}" or "]", 0
  at = text:match("^%s*()", at + 1)
  while text:sub(at, at) ~= closing do
    count = count + 1
    local key = count
    if first == "{" then
      key, at = read(text, at)
      assert(type(key) == "string")
      at = assert(text:match("^%s*:()", at))
    end
    values[key], at = read(text, at)
    at = text:match("^%s*,?%s*()", at)
  end
  return values, at + 1
end

-- Returns the value of a JSON text. It loses escapes, which no name of a field needs.
local function parse(text)
  return (read(text:gsub("\\.", "??"), 1))
end

local file = assert(io.open(OPENAPI))
local document = parse(file:read("*a"))
file:close()

local bodies = {} -- the schema of each body, by the pattern of its path
for path, operations in pairs(document.paths) do
  if operations.post then
    local pattern = "^" .. path:gsub("{%w+}", "[^/]+") .. "$"
    bodies[pattern] = operations.post.requestBody.content["application/json"].schema
  end
end

-- Returns the value of an enum that a text stands for: R7 for TILE_RED_7, EASY for BOT_LEVEL_EASY; nil for none.
local function meant(text, values)
  local letter, number = text:upper():match("^(%u)(%d*)$")
  local name = values[1] == "TILE_UNSPECIFIED" and TILES[letter] and TILES[letter] .. number or text:upper()
  for _, value in ipairs(values) do
    if value == name or value:sub(-#name - 1) == "_" .. name then return value end
  end
end

-- Returns why a text is no value of an enum; nil if it is one, a number or null. Texts with escapes are left to the filter.
local function fault_of(text, schema)
  if text == "null" or text:find("^-?%d+$") or text:find("??", 1, true) then return nil end
  for _, value in ipairs(schema.enum) do
    if value == text then return nil end
  end
  local value = meant(text, schema.enum)
  text = text:sub(1, 40):gsub("[^%w_.*-]", "?")
  return text .. (value and (" (write %s)"):format(value) or "")
end

-- Appends the place of each field that a message does not have to `unknown`, and that of each wrong value to `wrong`.
local function find_faults(message, schema, place, unknown, wrong)
  schema = schema.allOf and schema.allOf[1] or schema
  if schema["$ref"] then schema = document.components.schemas[schema["$ref"]:match("%w+$")] end
  if type(message) == "string" then
    local fault = schema.enum and fault_of(message, schema)
    if fault then wrong[#wrong + 1] = place:sub(2) .. ": " .. fault end
    return
  end
  for key, value in pairs(message) do
    local field, here = schema.items or schema.additionalProperties, place .. "." .. key
    if type(key) == "number" then
      here = place .. "[" .. key - 1 .. "]"
    elseif schema.properties then
      field = schema.properties[key] or schema.properties[key:gsub("_(%l)", string.upper)]
      if not field then unknown[#unknown + 1] = here:sub(2) end
    end
    if field then find_faults(value, field, here, unknown, wrong) end
  end
end

-- Returns a text with the first of some faults.
local function shown(faults, form)
  table.sort(faults)
  local listed = {}
  for index = 1, math.min(#faults, SHOWN) do listed[index] = faults[index]:sub(1, 200):gsub(form, "?") end
  return table.concat(listed, ", ") .. (#faults > SHOWN and " and others" or "")
end

-- Returns why a body is refused; nil if it is not, or if it is no JSON, which the JSON filter refuses.
local function refusal(body, schema)
  local is_json, message = pcall(parse, body)
  local unknown, wrong = {}, {}
  if is_json and type(message) == "table" then find_faults(message, schema, "", unknown, wrong) end
  if #unknown > 0 then
    return "unknown field of the body: " .. shown(unknown, "[^%w_.%[%]-]") .. "; /openapi.json lists the fields"
  elseif #wrong > 0 then
    return "wrong value in the body: " .. shown(wrong, "[^%w_.%[%]*: ()-]") .. "; /openapi.json lists the values"
  end
end

-- Returns the query of a watch that goes on after an event.
local function query_after(event_id, query)
  if not event_id:find("^%d+%-%x+$") then return query end
  query = query:gsub("([?&])etag=[^&]*", "%1")
  return (query == "" and "?" or query .. "&") .. "etag=" .. event_id
end

-- Returns the lines before an event's data: its kind, the id from which a watch can resume, and when to do so. With games
-- and changes, a change has no id: its game is still to come.
local function lines_before(data, has_both)
  local kind, update = data:match('^{"(%l+)":{(.*)')
  local etag, seconds
  if kind == "snapshot" or kind == "game" then
    etag = update:match('^"gameId":"%x+","revision":%d+,"etag":"([%x-]+)"')
  elseif kind == "change" and not has_both then
    etag = update:match('^"revision":%d+,"etag":"([%x-]+)"')
  elseif kind == "closing" then
    etag, seconds = update:match('^"etag":"([%x-]+)","retryDelay":"([%d.]+)s"')
  end
  local event = kind and ("event: %s\n"):format(kind) or ""
  local retry = seconds and ("retry: %d\n"):format(seconds * 1000) or ""
  return event .. retry .. (etag and ("id: %s\n"):format(etag) or "")
end

-- Returns whether a text has one of some forms.
local function has_form(text, forms)
  for _, form in ipairs(forms) do
    if text:find(form) then return true end
  end
  return false
end

-- Removes the headers that the service's gRPC library might not parse: of its own names, and those of bytes, which the service
-- does not read.
local function remove_unparsed(headers)
  local unparsed, seen = {}, {}
  for name, value in pairs(headers) do
    local is_good = PARSED[name] and has_form(value, PARSED[name]) and not seen[name]
    if not is_good and has_form(name, {"^grpc%-", "%-bin$"}) then unparsed[#unparsed + 1] = name end
    seen[name] = true
  end
  for _, name in ipairs(unparsed) do headers:remove(name) end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  remove_unparsed(headers)
  local path, query = (headers:get(":path") or ""):match("^(/v1/[^?]*)(.*)$") -- CONNECT has no path
  if not path then return end
  if headers:get(":method") == "POST" then
    for pattern, schema in pairs(bodies) do
      local body = path:find(pattern) and handle:body()
      local why = body and refusal(body:getBytes(0, body:length()), schema)
      if why then return handle:respond({[":status"] = "400"}, why) end
    end
  elseif path:find(":watch$") then
    local event_id, metadata = headers:get("last-event-id"), handle:streamInfo():dynamicMetadata()
    if event_id then headers:replace(":path", path .. query_after(event_id, query)) end
    metadata:set("watch", "has_both", query:find("[?&]content=[^&]*BOTH") ~= nil)
    metadata:set("watch", "is_event_source", headers:get("accept") == "text/event-stream")
  end
end

function envoy_on_response(handle)
  local watch = handle:streamInfo():dynamicMetadata():get("watch")
  if not watch then return end
  local headers = handle:headers()
  local status = headers:get(":status")
  if status == "200" then
    for chunk in handle:bodyChunks() do
      local events = chunk:getBytes(0, chunk:length()):gsub("data: ([^\n]*\n\n)", function(data)
        return lines_before(data, watch.has_both) .. "data: " .. data
      end)
      chunk:setBytes(events)
    end
  elseif watch.is_event_source and (status == "429" or status:find("^5")) then
    -- After any other status than 200 an EventSource gives up for good.
    headers:replace(":status", "200")
    headers:replace("content-type", "text/event-stream")
    handle:body():setBytes("retry: " .. RETRY_MS .. "\n\n")
  end
end

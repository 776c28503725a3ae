-- Which pages of other origins may call the service (CORS), and which may show its page in a frame. Two settings name them:
-- EDGE_ORIGINS and EDGE_FRAMES; docs/web-edge.md explains them. Tokens are headers, not cookies, so a page gains nothing by a
-- call that it makes for its visitor.

local LOCAL = "http://localhost:* https://localhost:* http://127.0.0.1:* https://127.0.0.1:* http://[::1]:* https://[::1]:*"
local HEADERS = "authorization, content-type, grpc-timeout, last-event-id, traceparent, tracestate, x-api-key, x-grpc-web, "
  .. "x-request-id, x-user-agent"
local EXPOSED = "grpc-message, grpc-retry-pushback-ms, grpc-status, grpc-status-details-bin, x-request-id"
local FORM = "scheme://host, scheme://host:port, scheme://host:* for any port, scheme://*.host for any name below it, or *"
local HOSTS = {"^[%w-.]+$", "^%*%.[%w-.]+$", "^%[[%x:]+%]$"}

-- Returns scheme, host and port (":8080", ":*" or "") of an origin or of an entry of a setting; nil for any other text.
local function parts(text)
  local scheme, rest = text:match("^(%l[%w+.-]*)://(.+)$")
  if not scheme then return nil end
  local host, port = rest:match("^(.-)(:%d+)$")
  if not host then host, port = rest:match("^(.-)(:%*)$") end
  host, port = host or rest, port or ""
  for _, form in ipairs(HOSTS) do
    if host:find(form) then return scheme, host, port end
  end
end

-- Returns the entries of a setting. An error here keeps Envoy from starting.
local function entries(name)
  local found = {}
  for entry in (os.getenv(name) or ""):gmatch("[^%s,]+") do
    if entry ~= "*" and not parts(entry) then error(name .. ": " .. entry .. " is none of " .. FORM) end
    found[#found + 1] = entry
  end
  return found
end

local origins = entries("EDGE_ORIGINS")
for entry in LOCAL:gmatch("%S+") do origins[#origins + 1] = entry end
local frames = table.concat(entries("EDGE_FRAMES"), " ")

-- Returns whether an origin is one of an entry.
local function is_one_of(origin, entry)
  if entry == "*" or entry == origin then return true end
  local scheme, host, port = parts(origin)
  local entry_scheme, entry_host, entry_port = parts(entry)
  if scheme ~= entry_scheme or (entry_port ~= ":*" and port ~= entry_port) then return false end
  local below = entry_host:match("^%*(%..+)$")
  return host == entry_host or (below ~= nil and host:sub(-#below) == below and #host > #below)
end

local function is_allowed(origin)
  for _, entry in ipairs(origins) do
    if is_one_of(origin, entry) then return true end
  end
  return false
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local origin = headers:get("origin")
  if not origin then return end
  local allowed = is_allowed(origin)
  if headers:get(":method") == "OPTIONS" and headers:get("access-control-request-method") then
    local answer = {[":status"] = "200", ["vary"] = "origin"}
    if allowed then
      answer["access-control-allow-origin"] = origin
      answer["access-control-allow-methods"] = "GET, POST"
      answer["access-control-allow-headers"] = HEADERS
      answer["access-control-max-age"] = "7200"
    end
    handle:respond(answer)
  elseif allowed then
    handle:streamInfo():dynamicMetadata():set("origins", "allowed", origin)
  end
end

function envoy_on_response(handle)
  local headers, of_page = handle:headers(), handle:streamInfo():dynamicMetadata():get("origins")
  if of_page then
    headers:replace("access-control-allow-origin", of_page.allowed)
    headers:replace("access-control-expose-headers", EXPOSED)
    headers:add("vary", "origin")
  end
  local policy = headers:get("content-security-policy")
  if policy and frames ~= "" then
    headers:replace("content-security-policy", (policy:gsub("frame%-ancestors 'none'", "frame-ancestors " .. frames)))
  end
end

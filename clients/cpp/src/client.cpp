#include "rummikub/client.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace rummikub {

namespace {

std::shared_ptr<grpc::Channel> open_channel(const std::string& target, const Options& options) {
  auto arguments = options.arguments;
  arguments.SetUserAgentPrefix("rummikub-client-cpp/" RUMMIKUB_VERSION);
  const auto given = options.arguments.c_channel_args();
  const auto set = [&arguments, given](const char* name, auto value) {
    const grpc_arg* const begin = given.args;
    if (std::any_of(begin, begin + given.num_args, [name](const grpc_arg& one) { return std::strcmp(one.key, name) == 0; })) return;
    if constexpr (std::is_same_v<decltype(value), int>) {
      arguments.SetInt(name, value);
    } else {
      arguments.SetString(name, value);
    }
  };
  set(GRPC_ARG_SERVICE_CONFIG, service_config);
  set(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else channels to one server share a connection
  set(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);  // the server closes connections with more than one ping in 10 seconds
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  set(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);  // how long an attempt to connect may take
  set(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);  // gRPC's default of 120 seconds outlasts every restart
  const auto credentials = options.credentials ? options.credentials : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

}  // namespace

std::string new_request_id() {
  std::random_device chance;  // of the system; a generator with a seed might repeat in a forked process
  const auto word = [&chance] { return static_cast<std::uint32_t>(chance()); };
  const auto first = word(), second = word(), third = word(), fourth = word();
  char id[37];
  std::snprintf(id, sizeof id, "%08x-%04x-%04x-%04x-%04x%08x", first, second >> 16, (second & 0x0fff) | 0x4000,
                (third >> 16 & 0x3fff) | 0x8000, third & 0xffff, fourth);
  return id;
}

Channels::Channels(Connect connect)
    : connect_(std::move(connect)), first_(std::make_shared<Entry>()), all_{first_} {
  first_->channel = connect_();
}

std::shared_ptr<grpc::Channel> Channels::enter() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [](const auto& one) { return one->streams < streams_each; });
  const auto entry = found == all_.end() ? std::make_shared<Entry>() : *found;
  if (found == all_.end()) {
    entry->channel = connect_();
    all_.push_back(entry);
  }
  ++entry->streams;
  return {entry->channel.get(), [entry](grpc::Channel*) { --entry->streams; }};
}

Connection::Connection(std::string target, std::shared_ptr<Channels> channels, std::string token)
    : target_(std::move(target)), channels_(std::move(channels)), token_(std::move(token)) {}

void Connection::prepare(grpc::ClientContext& context, std::optional<std::chrono::milliseconds> timeout) const {
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  if (timeout) context.set_deadline(std::chrono::system_clock::now() + *timeout);
}

Error Connection::error(const std::string& method, const grpc::Status& status) const {
  const auto state = channel()->GetState(false);
  const bool is_absent = state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_CONNECTING;
  std::string hint;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      hint = is_absent ? "no service answers at " + target_ + "; start one with `make run`, or correct the address and TLS"
             : status.error_code() == grpc::StatusCode::UNAVAILABLE
                 ? "the connection to " + target_ + " was lost; call again with the same request id"
                 : "the service at " + target_ + " did not answer in time; call again with the same request id";
      break;
    case grpc::StatusCode::UNIMPLEMENTED:
      hint = "the service at " + target_ + " does not have this call: update the service, which is older than this" +
             " client, or call its main address: the validation address has only ValidationService";
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      hint = "a message or its metadata is larger than the limit";
      break;
    default:
      break;
  }
  return Error(method, status, hint);
}

Client::Client(const std::string& target, const Options& options)
    : Client(std::make_shared<const Connection>(
          target, std::make_shared<Channels>([target, options] { return open_channel(target, options); }), "")) {}

Client::Client(std::shared_ptr<const Connection> connection)
    : games(connection),
      turns(connection),
      validation(connection),
      analysis(connection),
      records(connection),
      puzzles(connection),
      challenges(connection),
      connection_(std::move(connection)) {}

Client Client::seated(const std::string& token) const {
  // gRPC ends the process if metadata has other bytes.
  if (!std::all_of(token.begin(), token.end(), [](char c) { return ' ' <= c && c <= '~'; })) {
    throw std::invalid_argument("rummikub: a token has visible ASCII characters only; pass it as JoinGame returned it");
  }
  return Client(std::make_shared<const Connection>(target(), connection_->channels(), token));
}

Watch Client::watch(const v1::WatchGameRequest& request, WatchOptions options) const {
  return Watch(connection_, request, std::move(options));
}

Watch Client::watch(const std::string& game_id, WatchOptions options) const {
  v1::WatchGameRequest request;
  request.set_game_id(game_id);
  return watch(request, std::move(options));
}

GameWatch Client::watch_games(const std::string& game_id, WatchOptions options) const {
  v1::WatchGameRequest request;
  request.set_game_id(game_id);
  request.set_content(v1::WATCH_CONTENT_GAMES);
  return GameWatch(watch(request, std::move(options)));
}

}  // namespace rummikub

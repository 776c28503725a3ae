// A connection to the Rummikub rules service.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "rummikub/services.hpp"
#include "rummikub/watch.hpp"

namespace rummikub {

// The gRPC service config of a connection: retries of UNAVAILABLE with throttling, wait-for-ready, and a deadline for
// every call except the streams.
extern const char* const service_config;

struct Options {
  // For TLS: grpc::SslCredentials({}) uses the system's certificate authorities. Without it, the connection is plain.
  std::shared_ptr<grpc::ChannelCredentials> credentials = nullptr;
  // Channel arguments of gRPC; they override those of this client.
  grpc::ChannelArguments arguments = {};
};

// A connection to the service, as a spectator or, after seated(), as a seat or the host of a game. It is safe for
// concurrent use. Copies and seats share the connection, which is closed with the last of them. There is a connection for
// every 50 streams, such as watches, because a server accepts 100 calls on one. A call does not need the server to be
// there: it waits for it until its deadline. A failed call throws Error.
class Client {
 public:
  // Returns a client of the service at target (`host:port`).
  explicit Client(const std::string& target, const Options& options = {});

  Games games;
  Turns turns;
  Validation validation;
  Analysis analysis;
  Records records;
  Puzzles puzzles;
  Challenges challenges;

  // Returns a client on the same connection that sends a token with every call: that of a seat, or the host token.
  // Throws std::invalid_argument for a text that cannot be sent.
  Client seated(const std::string& token) const;

  // Returns the updates of a game.
  Watch watch(const v1::WatchGameRequest& request, WatchOptions options = {}) const;
  Watch watch(const std::string& game_id, WatchOptions options = {}) const;

  // Returns a game as it is now and after every change.
  GameWatch watch_games(const std::string& game_id, WatchOptions options = {}) const;

  const std::string& target() const { return connection_->target(); }
  // The channel, for stubs of your own, such as those of asynchronous calls. Their calls send no token.
  const std::shared_ptr<grpc::Channel>& channel() const { return connection_->channel(); }

 private:
  explicit Client(std::shared_ptr<const Connection> connection);

  std::shared_ptr<const Connection> connection_;
};

}  // namespace rummikub

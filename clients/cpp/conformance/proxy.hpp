// A TCP proxy that cuts its connections on demand.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Forwards connections from a free port to `target` (an IPv4 address and a port) until its end.
class Proxy {
 public:
  explicit Proxy(const std::string& target) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const auto colon = target.rfind(':');
    server_ = address(target.substr(0, colon), static_cast<std::uint16_t>(std::stoi(target.substr(colon + 1))));
    auto own = address("127.0.0.1", 0);
    socklen_t size = sizeof own;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&own), size) || ::listen(listener_, 16) ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size)) {
      throw std::runtime_error("the proxy cannot listen");
    }
    this->target = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    threads_.emplace_back([this] { accept(); });
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy() {
    ::shutdown(listener_, SHUT_RDWR);
    threads_.front().join();
    cut();
    for (auto thread = threads_.begin() + 1; thread != threads_.end(); ++thread) thread->join();
    for (const int socket : sockets_) ::close(socket);
    ::close(listener_);
  }

  // Ends all connections; new ones are accepted.
  void cut() {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }

  // Returns all bytes that clients have sent.
  std::string sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

  std::string target;                // `host:port` of the proxy
  std::atomic<bool> forwards{true};  // else bytes are lost, and the connections stay
  std::atomic<int> connections{0};

 private:
  static sockaddr_in address(const std::string& host, std::uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &made.sin_addr);
    return made;
  }

  void accept() {
    for (int client; (client = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      ++connections;
      const int server = ::socket(AF_INET, SOCK_STREAM, 0);
      const std::lock_guard lock(mutex_);
      sockets_.insert(sockets_.end(), {client, server});
      if (::connect(server, reinterpret_cast<sockaddr*>(&server_), sizeof server_)) {
        ::shutdown(client, SHUT_RDWR);
        continue;
      }
      threads_.emplace_back([this, client, server] { forward(client, server, true); });
      threads_.emplace_back([this, client, server] { forward(server, client, false); });
    }
  }

  void forward(int source, int sink, bool is_sent) {
    char data[65536];
    for (ssize_t size; (size = ::recv(source, data, sizeof data, 0)) > 0;) {
      if (is_sent) {
        const std::lock_guard lock(mutex_);
        sent_.append(data, static_cast<size_t>(size));
      }
      for (ssize_t done = 0; forwards && done < size;) {
        const auto part = ::send(sink, data + done, static_cast<size_t>(size - done), MSG_NOSIGNAL);
        if (part < 0) break;
        done += part;
      }
    }
    ::shutdown(source, SHUT_RDWR);
    ::shutdown(sink, SHUT_RDWR);
  }

  int listener_;
  sockaddr_in server_;
  std::vector<std::thread> threads_;  // the first one accepts, and adds the others
  std::mutex mutex_;                  // guards what follows
  std::vector<int> sockets_;
  std::string sent_;
};

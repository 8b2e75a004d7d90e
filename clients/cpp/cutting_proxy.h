#ifndef PLANEWISE_CLIENTS_CPP_CUTTING_PROXY_H_
#define PLANEWISE_CLIENTS_CPP_CUTTING_PROXY_H_
// A TCP proxy for tests that cuts connections: after a number of bytes, or when told
// to, it resets both sides, whatever is under way, and lets the next connection through.
//
// Not here: what travels through it.

#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace planewise {

// Thread-safe.
class CuttingProxy {
 public:
  // Forwards to `port` of 127.0.0.1. The bytes of both directions and all connections are
  // counted together, and the connection that brings the count to one of `cuts` is cut.
  explicit CuttingProxy(int port, std::vector<int64_t> cuts = {});
  ~CuttingProxy();

  // 127.0.0.1:PORT.
  const std::string& target() const { return target_; }

  int64_t byte_count() const;
  int64_t cut_count() const;

  // What the server sends from now on, on the connections that there are, is lost.
  void LoseReplies();
  // Cuts the connections that there are.
  void CutAll();

 private:
  struct Connection {
    int client;
    int server;
    bool replies_lost = false;
  };

  void Accept();
  void Forward(std::list<Connection>::iterator connection);
  // Counts bytes that came; true: cut here.
  bool Count(int64_t bytes);
  bool Lost(const Connection& connection, int from) const;

  const int port_;
  std::string target_;
  int listener_ = -1;
  int stop_pipe_[2] = {-1, -1};
  mutable Mutex mutex_;
  std::vector<int64_t> cuts_ ABSL_GUARDED_BY(mutex_);  // ascending; those to come
  int64_t byte_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cut_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);  // those with a forwarder
  std::vector<std::thread> forwarders_;
  std::thread acceptor_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_CUTTING_PROXY_H_

#include "clients/cpp/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

// Without sockets there is no test.
int Required(int result, const char* call) {
  if (result >= 0) return result;
  std::cerr << "cutting proxy: " << call << " failed: errno " << errno << "\n";
  std::abort();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Closing resets the connection: what is under way is lost.
void Reset(int socket) {
  const linger now = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(socket);
}

bool SendAll(int socket, const char* bytes, ssize_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= sent;
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(int port, std::vector<int64_t> cuts)
    : port_(port), cuts_(std::move(cuts)) {
  listener_ = Required(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  Required(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), "bind");
  Required(listen(listener_, SOMAXCONN), "listen");
  Required(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  Required(pipe(stop_pipe_), "pipe");
  target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  acceptor_ = std::thread([this] { Accept(); });
}

CuttingProxy::~CuttingProxy() {
  close(stop_pipe_[1]);  // Every poll sees the other end hang up.
  acceptor_.join();
  for (std::thread& forwarder : forwarders_) forwarder.join();
  close(listener_);
  close(stop_pipe_[0]);
}

int64_t CuttingProxy::byte_count() const {
  MutexLock lock(mutex_);
  return byte_count_;
}

int64_t CuttingProxy::cut_count() const {
  MutexLock lock(mutex_);
  return cut_count_;
}

void CuttingProxy::LoseReplies() {
  MutexLock lock(mutex_);
  for (Connection& connection : connections_) connection.replies_lost = true;
}

void CuttingProxy::CutAll() {
  MutexLock lock(mutex_);
  // The forwarder sees the end of what comes in, and resets both.
  for (const Connection& connection : connections_) {
    shutdown(connection.client, SHUT_RD);
    ++cut_count_;
  }
}

void CuttingProxy::Accept() {
  while (true) {
    pollfd events[] = {{listener_, POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
    Required(poll(events, 2, -1), "poll");
    if (events[1].revents != 0) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = Required(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    const sockaddr_in address = Loopback(port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
      Reset(server);
      Reset(client);
      continue;
    }
    std::list<Connection>::iterator connection;
    {
      MutexLock lock(mutex_);
      connection = connections_.insert(connections_.end(), {client, server});
    }
    forwarders_.emplace_back([this, connection] { Forward(connection); });
  }
}

void CuttingProxy::Forward(std::list<Connection>::iterator connection) {
  const int sockets[] = {connection->client, connection->server};
  char bytes[1 << 16];
  bool alive = true;
  while (alive) {
    pollfd events[] = {
        {sockets[0], POLLIN, 0}, {sockets[1], POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
    Required(poll(events, 3, -1), "poll");
    if (events[2].revents != 0) break;
    for (int from = 0; from < 2 && alive; ++from) {
      if (events[from].revents == 0) continue;
      const ssize_t size = recv(sockets[from], bytes, sizeof bytes, 0);
      alive = size > 0 && !Count(size) &&
              (Lost(*connection, sockets[from]) || SendAll(sockets[1 - from], bytes, size));
    }
  }
  MutexLock lock(mutex_);
  connections_.erase(connection);
  for (const int socket : sockets) Reset(socket);
}

bool CuttingProxy::Count(int64_t bytes) {
  MutexLock lock(mutex_);
  byte_count_ += bytes;
  if (cuts_.empty() || byte_count_ < cuts_.front()) return false;
  while (!cuts_.empty() && byte_count_ >= cuts_.front()) cuts_.erase(cuts_.begin());
  ++cut_count_;
  return true;
}

bool CuttingProxy::Lost(const Connection& connection, int from) const {
  MutexLock lock(mutex_);
  return from == connection.server && connection.replies_lost;
}

}  // namespace planewise

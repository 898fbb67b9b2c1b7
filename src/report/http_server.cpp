#include "report/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "report/http_request.h"

namespace hdetach::report {
namespace {

using Clock = std::chrono::steady_clock;
using Ask = std::function<HttpAnswer(const std::string& path)>;

// Beyond these the client that waited longest is dropped, so that silent ones cannot keep others
// out.
constexpr size_t kMostClients = 64;
constexpr int kPollMilliseconds = 200;  // how late a signal may be seen

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Internal Server Error";
  }
}

HttpAnswer refusal(int status) {
  return {status, "text/plain; charset=utf-8",
          std::make_shared<const std::string>(fmt::format("{} {}\n", status, reason(status)))};
}

HttpAnswer answer_to(const HttpRequest& request, const Ask& ask) {
  if (request.state == HttpRequest::State::kBad || request.host.empty()) return refusal(400);
  if (!is_local_host(request.host)) return refusal(403);
  if (request.method != "GET" && request.method != "HEAD") return refusal(405);
  try {
    HttpAnswer answer = ask(request.path);
    return answer.body ? answer : refusal(answer.status);
  } catch (const std::exception& problem) {
    HttpAnswer answer = refusal(500);
    answer.body = std::make_shared<const std::string>(fmt::format("{}\n", problem.what()));
    return answer;
  }
}

class Client {
 public:
  explicit Client(int socket) : socket_(socket), since_(Clock::now()) {}
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  pollfd wanted() const {
    return {socket_, static_cast<short>(state_ == State::kWriting ? POLLOUT : POLLIN), 0};
  }

  // False when the connection is over.
  bool go_on(const Ask& ask) {
    if (state_ == State::kReading) return read(ask);
    return state_ == State::kWriting ? write() : drain();
  }

  bool too_slow(const HttpPatience& patience) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
    if (state_ == State::kDraining) return seconds > 1;
    return seconds >
           (state_ == State::kReading ? patience.request_seconds : patience.progress_seconds);
  }

 private:
  enum class State { kReading, kWriting, kDraining };

  bool read(const Ask& ask) {
    char chunk[4096];
    const ssize_t n = ::recv(socket_, chunk, sizeof(chunk), 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    request_.append(chunk, static_cast<size_t>(n));
    const HttpRequest request = parse_request(request_);
    if (request.state == HttpRequest::State::kIncomplete) return true;
    const HttpAnswer answer = answer_to(request, ask);
    head_ = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n{}Connection: close\r\n\r\n",
        answer.status, reason(answer.status), answer.type, answer.body->size(),
        answer.status == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (request.method != "HEAD") body_ = answer.body;
    state_ = State::kWriting;
    since_ = Clock::now();
    return write();
  }

  bool write() {
    const size_t size = head_.size() + (body_ ? body_->size() : 0);
    while (sent_ < size) {
      const bool in_head = sent_ < head_.size();
      const std::string& part = in_head ? head_ : *body_;
      const size_t from = in_head ? sent_ : sent_ - head_.size();
      const ssize_t n = ::send(socket_, part.data() + from, part.size() - from, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      sent_ += static_cast<size_t>(n);
      since_ = Clock::now();
    }
    // To close with bytes unread would be a reset, and the client might lose the answer.
    ::shutdown(socket_, SHUT_WR);
    state_ = State::kDraining;
    return true;
  }

  bool drain() {
    char chunk[4096];
    const ssize_t n = ::recv(socket_, chunk, sizeof(chunk), 0);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }

  const int socket_;
  State state_ = State::kReading;
  Clock::time_point since_;  // connected, or last took a part of the answer
  std::string request_, head_;
  std::shared_ptr<const std::string> body_;
  size_t sent_ = 0;
};

[[noreturn]] void fail_to_listen(int socket, int port) {
  const int error = errno;
  if (socket >= 0) ::close(socket);
  const char* const fix =
      error == EADDRINUSE ? "; leave --port out to get a free one, or name another" : "";
  throw std::runtime_error(
      fmt::format("cannot listen on 127.0.0.1:{}: {}{}", port, std::strerror(error), fix));
}

}  // namespace

HttpServer::HttpServer(int port, HttpPatience patience)
    : patience_(patience),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (listener_ < 0) fail_to_listen(listener_, port);
  const int yes = 1;  // the port of a server that just ended can be taken at once
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, plain, &size) != 0) {
    fail_to_listen(listener_, port);
  }
  port_ = ntohs(address.sin_port);
}

HttpServer::~HttpServer() { ::close(listener_); }

void HttpServer::serve(const volatile std::sig_atomic_t* stop, const Ask& ask) {
  std::vector<std::unique_ptr<Client>> clients;  // the oldest first
  while (*stop == 0) {
    std::vector<pollfd> waits = {{listener_, POLLIN, 0}};
    for (const auto& client : clients) waits.push_back(client->wanted());
    if (::poll(waits.data(), waits.size(), kPollMilliseconds) < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(fmt::format("cannot wait for clients: {}", std::strerror(errno)));
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      const bool ready = waits[i + 1].revents != 0;
      if ((ready && !clients[i]->go_on(ask)) || clients[i]->too_slow(patience_)) clients[i].reset();
    }
    clients.erase(std::remove(clients.begin(), clients.end(), nullptr), clients.end());
    if (waits[0].revents == 0) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const bool full =
        socket < 0 ? errno == EMFILE || errno == ENFILE : clients.size() >= kMostClients;
    if (full && !clients.empty()) clients.erase(clients.begin());
    if (socket >= 0) clients.push_back(std::make_unique<Client>(socket));
  }
}

}  // namespace hdetach::report

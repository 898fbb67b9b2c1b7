// The server of hdetach report --watch, asked over real sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "report/http_request.h"
#include "report/http_server.h"
#include "tests/mutate.h"
#include "tests/program.h"

namespace {

using namespace hdetach::report;
using hdetach::program::contains;
using State = HttpRequest::State;

class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const timeval patience = {20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& text) const {
    ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until the other side closes.
  std::string all() const {
    std::string out;
    char chunk[65536];
    for (ssize_t n; (n = ::recv(socket_, chunk, sizeof(chunk), 0)) > 0;) {
      out.append(chunk, static_cast<size_t>(n));
    }
    return out;
  }

 private:
  int socket_;
  bool connected_;
};

class ReportServer : public testing::Test {
 protected:
  ReportServer() : server_(0, {0.5, 0.5}) {
    thread_ = std::thread([this] {
      server_.serve(&stop_, [this](const std::string& path) -> HttpAnswer {
        if (path == "/") return {200, "text/html; charset=utf-8", small_};
        if (path == "/large") return {200, "application/json", large_};
        if (path == "/fails") throw std::runtime_error("no luck");
        return {};
      });
    });
  }
  ~ReportServer() override {
    stop_ = SIGINT;
    thread_.join();
  }

  std::string answer(const std::string& request) const {
    const Connection connection(server_.port());
    connection.send(request);
    return connection.all();
  }

  const std::shared_ptr<const std::string> small_ = std::make_shared<std::string>("<p>hello</p>"),
                                           large_ = std::make_shared<std::string>(20000000, 'x');
  volatile std::sig_atomic_t stop_ = 0;
  HttpServer server_;
  std::thread thread_;
};

const std::string kHost = "Host: localhost:1\r\n\r\n";

TEST_F(ReportServer, AnswersWithLengthAndTypeAndCloses) {
  const std::string text = answer("GET / HTTP/1.1\r\n" + kHost);
  EXPECT_EQ(text.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << text;
  EXPECT_TRUE(contains(text, "\r\nContent-Type: text/html; charset=utf-8\r\n")) << text;
  EXPECT_TRUE(contains(text, "\r\nContent-Length: 12\r\n")) << text;
  EXPECT_TRUE(contains(text, "\r\nConnection: close\r\n")) << text;
  EXPECT_TRUE(contains(text, "\r\n\r\n<p>hello</p>")) << text;
  const std::string large = answer("GET /large?x=1 HTTP/1.1\r\n" + kHost);
  EXPECT_EQ(large.size() - large.find("\r\n\r\n") - 4, large_->size());
  const std::string head = answer("HEAD / HTTP/1.1\r\n" + kHost);
  EXPECT_TRUE(contains(head, "\r\nContent-Length: 12\r\n")) << head;
  EXPECT_FALSE(contains(head, "hello")) << head;
}

TEST_F(ReportServer, RefusesWhatItDoesNotKnow) {
  const struct {
    std::string request, status;
  } cases[] = {
      {"GET /etc/passwd HTTP/1.1\r\n" + kHost, "404 Not Found"},
      {"GET /../../etc/passwd HTTP/1.1\r\n" + kHost, "404 Not Found"},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\n" + kHost + "abc", "405 Method Not Allowed"},
      {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/2.0\r\n" + kHost, "400 Bad Request"},
      {"GET http://localhost/ HTTP/1.1\r\n" + kHost, "400 Bad Request"},
      {"nonsense\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400 Bad Request"},
      {"GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n" + kHost, "400 Bad Request"},
      {std::string(100000, 'x'), "400 Bad Request"},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden"},
      {"GET / HTTP/1.1\r\nHost: localhost.evil.example:80\r\n\r\n", "403 Forbidden"},
      {"GET /fails HTTP/1.1\r\n" + kHost, "500 Internal Server Error"}};
  for (const auto& c : cases) {
    const std::string text = answer(c.request);
    EXPECT_EQ(text.rfind("HTTP/1.1 " + c.status + "\r\n", 0), 0u)
        << c.request.substr(0, 60) << text;
    EXPECT_FALSE(contains(text, "hello"));
  }
}

TEST_F(ReportServer, SlowAndSilentClientsKeepNobodyWaitingAndAreDropped) {
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 100; ++i) {  // more than it serves at a time
    silent.push_back(std::make_unique<Connection>(server_.port()));
    ASSERT_TRUE(silent.back()->connected());
    if (i % 2) silent.back()->send("GET / HT");
  }
  const Connection unread(server_.port());  // asks for much and does not take it
  unread.send("GET /large HTTP/1.1\r\n" + kHost);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(contains(answer("GET / HTTP/1.1\r\n" + kHost), "hello"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(silent.back()->all(), "");  // ends when the server closes it
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  EXPECT_LT(unread.all().size(), large_->size());
}

TEST_F(ReportServer, ARequestMayComeInPieces) {
  const Connection connection(server_.port());
  const std::string request = "GET / HTTP/1.1\r\n" + kHost;
  for (const char c : request) connection.send(std::string(1, c));
  EXPECT_TRUE(contains(connection.all(), "hello"));
}

TEST_F(ReportServer, APortInUseIsNamed) {
  try {
    HttpServer other(server_.port());
    FAIL() << "two servers on one port";
  } catch (const std::runtime_error& error) {
    const std::string place = "127.0.0.1:" + std::to_string(server_.port());
    EXPECT_EQ(std::string(error.what()),
              "cannot listen on " + place +
                  ": Address already in use; leave --port out to get a free one, or name another");
  }
}

TEST(ReportRequest, OnlyThisMachinesNamesAreLocal) {
  for (const char* host :
       {"localhost", "localhost:8000", "127.0.0.1", "127.0.0.1:1", "[::1]:80", "[::1]"}) {
    EXPECT_TRUE(is_local_host(host)) << host;
  }
  for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.0.0.1:x", "localhost:", "evil.example:80", "localhost:123456"}) {
    EXPECT_FALSE(is_local_host(host)) << host;
  }
}

TEST(ReportRequest, IsCompleteWithItsHeaders) {
  EXPECT_EQ(parse_request("").state, State::kIncomplete);
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\nHost: localhost\r\n").state, State::kIncomplete);
  const HttpRequest request =
      parse_request("GET /data.json?1 HTTP/1.1\r\nAccept: */*\r\nhOST:  LocalHost:80 \r\n\r\n");
  EXPECT_EQ(request.state, State::kComplete);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/data.json");
  EXPECT_EQ(request.host, "localhost:80");
  hdetach::Mutator mutate;
  for (int i = 0; i < 20000; ++i)
    parse_request(mutate("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

}  // namespace

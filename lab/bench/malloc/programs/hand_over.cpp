// SPDX-License-Identifier: MIT
// Producers make messages of strings and vectors, consumers read and free them; the argument is how much.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct message {
    std::string name;
    std::vector<std::string> parts;
    std::shared_ptr<std::vector<int>> numbers;
};

class channel
{
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::unique_ptr<message>> queue;

  public:
    void put(std::unique_ptr<message> one)
    {
        std::unique_lock<std::mutex> hold(mutex);
        changed.wait(hold, [this] { return queue.size() < 1000; });
        queue.push_back(std::move(one));
        changed.notify_all();
    }
    std::unique_ptr<message> take()
    {
        std::unique_lock<std::mutex> hold(mutex);
        changed.wait(hold, [this] { return !queue.empty(); });
        auto one = std::move(queue.front());
        queue.pop_front();
        changed.notify_all();
        return one;
    }
};

int main(int, char **argv)
{
    const int count = static_cast<int>(40000 * std::atof(argv[1]));
    channel between;
    size_t total = 0;

    std::thread producer([&] {
        for (int i = 0; i < count; i++) {
            auto one = std::make_unique<message>();
            one->name = "message number " + std::to_string(i) + " for the consumer";
            for (int j = 0; j < i % 12; j++)
                one->parts.push_back("part " + std::to_string(j * i) + std::string(j * 5, 'x'));
            one->numbers = std::make_shared<std::vector<int>>(i % 300, i);
            between.put(std::move(one));
        }
        between.put(nullptr);
    });
    while (auto one = between.take()) {
        total += one->name.size() + one->numbers->size();
        for (const auto &part : one->parts)
            total += part.size();
    }
    producer.join();
    std::printf("%zu\n", total);
}

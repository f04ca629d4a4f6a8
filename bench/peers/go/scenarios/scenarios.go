// Package scenarios has those of bench/peers/README.md, for a peer of this language.
package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	names  = 100
	warmUp = time.Second
	hold   = 700 * time.Millisecond
)

// Client is one process's door to the store. Lock waits; what it returns lets go.
type Client interface {
	Lock(thread int, name string) (func() error, error)
}

// Opener makes a Client for so many threads.
type Opener func(port string, threads int) (Client, error)

// Run does what the command line says and prints the figure; module is the peer's, for its version.
func Run(peer, module string, open Opener) {
	if err := run(peer, module, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(peer, module string, open Opener) error {
	if len(os.Args) != 4 {
		return fmt.Errorf("usage: %s SCENARIO SECONDS PORT", peer)
	}
	scenario, port := os.Args[1], os.Args[3]
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		return err
	}
	length := time.Duration(seconds * float64(time.Second))
	field, value := "p50_us", 0.0
	if scenario == "P2" {
		value, err = wakeUp(open, port, length)
	} else {
		var threads int
		if threads, err = strconv.Atoi(scenario[1:]); err != nil {
			return err
		}
		var client Client
		if client, err = open(port, threads); err != nil {
			return err
		}
		if strings.HasPrefix(scenario, "C") {
			field = "hand_overs_per_s"
			value, err = contend(client, threads, length)
		} else {
			field = "cycles_per_s"
			value, err = cycle(client, threads, length)
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"peer": peer, "version": version(module), "scenario": scenario, "field": field, "value": value})
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			return strings.TrimPrefix(each.Version, "v")
		}
	}
	return "unknown"
}

func cycle(client Client, threads int, length time.Duration) (float64, error) {
	once := func(thread, count int) error {
		unlock, err := client.Lock(thread, fmt.Sprintf("peer:%d:%d", thread, count%names))
		if err != nil {
			return err
		}
		return unlock()
	}
	if _, err := repeat(threads, warmUp, once); err != nil {
		return 0, err
	}
	return repeat(threads, length, once)
}

func contend(client Client, threads int, length time.Duration) (float64, error) {
	holder, changes := -1, 0 // guarded by the lock itself
	once := func(thread, _ int) error {
		unlock, err := client.Lock(thread, "peer:contended")
		if err != nil {
			return err
		}
		if holder != thread {
			holder = thread
			changes++
		}
		return unlock()
	}
	if _, err := repeat(threads, warmUp, once); err != nil {
		return 0, err
	}
	changes = 0
	began := time.Now()
	_, err := repeat(threads, length, once)
	return float64(changes) / time.Since(began).Seconds(), err
}

func wakeUp(open Opener, port string, length time.Duration) (float64, error) {
	holder, err := open(port, 1)
	if err != nil {
		return 0, err
	}
	waiter, err := open(port, 1)
	if err != nil {
		return 0, err
	}
	rounds := max(3, int(length/hold))
	gaps := make([]float64, 0, rounds)
	for range rounds {
		unlock, err := holder.Lock(0, "peer:passed")
		if err != nil {
			return 0, err
		}
		type entry struct {
			at  time.Time
			err error
		}
		entries := make(chan entry, 1)
		go func() {
			mine, err := waiter.Lock(0, "peer:passed")
			at := time.Now()
			if err == nil {
				err = mine()
			}
			entries <- entry{at, err}
		}()
		time.Sleep(hold)
		left := time.Now()
		if err := unlock(); err != nil {
			return 0, err
		}
		entered := <-entries
		if entered.err != nil {
			return 0, entered.err
		}
		gaps = append(gaps, float64(entered.at.Sub(left))/1e3)
	}
	sort.Float64s(gaps)
	return gaps[len(gaps)/2], nil
}

// Steps a second of all threads.
func repeat(threads int, length time.Duration, once func(thread, count int) error) (float64, error) {
	var over atomic.Bool
	var total atomic.Int64
	var team sync.WaitGroup
	troubles := make(chan error, threads)
	began := time.Now()
	for thread := range threads {
		team.Add(1)
		go func() {
			defer team.Done()
			count := 0
			for ; !over.Load(); count++ {
				if err := once(thread, count); err != nil {
					troubles <- err
					break
				}
			}
			total.Add(int64(count))
		}()
	}
	time.Sleep(length)
	over.Store(true)
	elapsed := time.Since(began).Seconds()
	team.Wait()
	select {
	case err := <-troubles:
		return 0, err
	default:
		return float64(total.Load()) / elapsed, nil
	}
}

package daemon

import (
	"reflect"
	"sync/atomic"

	"sublet/daemon/config"
	"sublet/daemon/internal/reach"
)

// settings are those in force: the last ones that could be read.
type settings struct {
	path string
	now  atomic.Pointer[config.Config]
}

// LoadSettings is config.Load with the checks of what the settings are for.
func LoadSettings(path string) (config.Config, error) { return config.Load(path, reach.CheckSettings) }

// load reads the settings for the first time.
func (s *settings) load() error {
	c, err := LoadSettings(s.path)
	if err != nil {
		return err
	}
	s.now.Store(&c)
	return nil
}

// get returns the settings in force. Their maps are shared: readers only.
func (s *settings) get() config.Config { return *s.now.Load() }

// reload reads the file again. With an error the old settings stay (T5d).
func (s *settings) reload() (changed bool, err error) {
	c, err := LoadSettings(s.path)
	if err != nil {
		return false, err
	}
	changed = !reflect.DeepEqual(*s.now.Load(), c)
	s.now.Store(&c)
	return changed, nil
}

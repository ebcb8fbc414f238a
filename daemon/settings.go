package daemon

import (
	"reflect"
	"sync/atomic"

	"sublet/daemon/config"
	"sublet/daemon/internal/reach"
)

// settings are the settings in force: the last valid ones.
type settings struct {
	path string
	now  atomic.Pointer[config.Config]
}

// LoadSettings reads the settings file as config.Load does, with the checks of the packages that use the settings.
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

// get returns the settings in force. Callers must not change the maps, which are shared.
func (s *settings) get() config.Config { return *s.now.Load() }

// reload reads the file again. If that fails the old settings stay in force.
func (s *settings) reload() (changed bool, err error) {
	c, err := LoadSettings(s.path)
	if err != nil {
		return false, err
	}
	changed = !reflect.DeepEqual(*s.now.Load(), c)
	s.now.Store(&c)
	return changed, nil
}
